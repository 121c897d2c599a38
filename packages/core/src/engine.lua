-- Decides groups of checks, each group all or nothing, on one clock.
--
-- KEYS     of the checks, each once; they share a slot.
-- ARGV[1]  runs of equal groups, one after another. A run: '<dBHHH' not_after (us), mode, how many groups, checks of a
--          group, and how far the keys of a group are after those of the one before. Then for each check of a group:
--          '<Hc2B' the place in KEYS of the first group's key, code, 1 if shadow; nine doubles: limit, window in us, burst,
--          four numbers of the algorithm's own, and
--          to peek (mode 0) or charge (1): least and most units. Plain decisions ask least = most = cost; a lease takes
--          what there is between the two, the same for all checks of its group.
--          to refund (2), a group of one: units, and when (us) the charge was to be whole again.
-- ARGV[2]  'hex' where ARGV[1] is written so, for those who cannot send bytes.
-- Reply    one string of little-endian doubles, all whole: TIME in us, then for each check in order: 2 x the units
--          granted, plus 1 if allowed, or -1 if too late (nothing was read or charged); remaining; delay in us if allowed,
--          else retry (-1 never); replenish; reset. Of a refund only the first counts.
--
-- Denials, peeks and groups that come too late write nothing. Every write sets an expiry.
--
-- What is run for each check calls as few functions and makes as few tables as it can: on Redis they are dearer than all
-- arithmetic. `x - x % 1` is floor(x).
--@include arithmetic.lua

local spread = unpack
local pack, unpack, call = struct.pack, struct.unpack, redis.call

local clock = call('time') -- @live
local now = clock[1] * 1000000 + clock[2] -- @live
--@timed local now = tonumber(ARGV[#ARGV])

local runs = ARGV[1]
if ARGV[2] == 'hex' then
  runs = string.gsub(runs, '..', function(byte)
    return string.char(tonumber(byte, 16))
  end)
end
local stored = call('mget', spread(KEYS)) -- kept up to date: a later group of this call sees what an earlier one stored
local reply, replies, replied -- the answer to the first check, and those to others
local kept, ttl -- how long in us the last state is kept, and its expiry
local units, states, edits, keeps, answers -- of each check of a group, where there are several
local at, runs_end = 1, #runs

-- The algorithm's answer to one check, and to come of it: the state to store once charged, and how long in us to keep it if
-- not until reset. A state is a string, or true where edit() changes a list in place.
local allowed, remaining, retry, replenish, reset, delay
local state, edit, keep

while at <= runs_end do
  local not_after, mode, groups, count, stride
  not_after, mode, groups, count, stride, at = unpack('<dBHHH', runs, at)
  local checks, first_key, code, shadow, limit, window, burst, n1, n2, n3, n4, least, most
  if count == 1 then
    first_key, code, shadow, limit, window, burst, n1, n2, n3, n4, least, most, at = unpack('<Hc2Bddddddddd', runs, at)
  else
    checks = {}
    for nth = 1, count do
      local check = { unpack('<Hc2Bddddddddd', runs, at) }
      checks[nth] = check
      at = check[13]
    end
    if not units then
      units, states, edits, keeps, answers = { 0, 0, 0 }, { 0, 0, 0 }, {}, { 0, 0, 0 }, { 0, 0, 0 }
    end
  end

  for group = 0, groups - 1 do
    local admitted, lease, answer = true, 1 / 0, nil
    local round, rounds = 1, count
    if now > not_after then
      rounds = 0
      state = nil
    end
    while round <= rounds do
      local nth, cost, charged_until = round, most, nil
      if count > 1 then
        if round > count then
          nth = round - count
        end
        first_key, code, shadow, limit, window, burst, n1, n2, n3, n4, least, most = spread(checks[nth])
        cost = most
        if round > count then
          cost = admitted and lease or 0
        end
      elseif mode == 2 then
        cost = least
        charged_until = most
      end
      -- The second time round only what was tried with more than is granted.
      if round <= count or cost < units[nth] then
        local k = first_key + group * stride
        local key, raw, given = KEYS[k], stored[k], nil
        repeat
          allowed = true
          remaining = 0
          retry = 0
          replenish = 0
          reset = 0
          delay = 0
          state = nil
          edit = nil
          keep = nil
          if limit == 0 then
            allowed = false
            retry = -1
          else
            -- With charged_until, when a charge would have been whole again: only the state once cost of it is given back,
            -- if any is.
            --@algorithms
          end
          local again = false
          if charged_until then
            if state then
              -- Once more, for how long it is to be kept.
              if edit then
                edit()
              end
              given = state
              raw = state
              cost = 0
              charged_until = nil
              again = true
            end
          elseif not allowed and cost == most and least < most then
            -- A lease takes what there is, and asks for its least where that is more.
            cost = remaining > least and remaining or least
            again = true
          end
        until not again
        local outcome = 0
        if mode == 2 then
          state = given
          edit = nil
          outcome = given and 2 * least + 1 or 1
        elseif allowed then
          outcome = 2 * cost + 1
          if cost < most and shadow == 0 and cost < lease then
            lease = cost
          end
        elseif shadow == 0 then
          admitted = false
        end
        if reply or nth > 1 then
          answer = pack('<ddddd', outcome, remaining, retry + delay, replenish, reset)
        else
          answer = pack('<dddddd', now, outcome, remaining, retry + delay, replenish, reset)
        end
        if count > 1 then
          units[nth] = allowed and cost or 0
          states[nth] = state or false
          edits[nth] = edit
          keeps[nth] = keep or reset
          answers[nth] = answer
        end
      end
      round = round + 1
      if round > rounds and count > 1 and rounds == count and (not admitted or lease < 1 / 0) then
        rounds = 2 * count
      end
    end

    for nth = 1, count do
      if rounds == 0 then
        answer = reply and pack('<ddddd', -1, 0, 0, 0, 0) or pack('<dddddd', now, -1, 0, 0, 0, 0)
      elseif count > 1 then
        first_key = checks[nth][1]
        state = states[nth]
        edit = edits[nth]
        keep = keeps[nth]
        answer = answers[nth]
      end
      if state and mode > 0 then
        local k = first_key + group * stride
        keep = keep or reset
        if keep ~= kept then
          kept = keep
          local ms = (keep + -keep % 1000) / 1000 + 1000
          --@timed ms = ms + 3600000
          ttl = string.format('%d', ms)
        end
        if state == true then
          if edit then
            edit()
          end
          call('pexpire', KEYS[k], ttl)
        else
          call('psetex', KEYS[k], ttl, state)
          stored[k] = state
        end
      end
      if not reply then
        reply = answer
      else
        if not replies then
          replies, replied = {}, 0
        end
        replied = replied + 1
        replies[replied] = answer
      end
    end
  end
end

return replies and reply .. table.concat(replies) or reply
