-- Decides groups of checks, each group all or nothing, on one clock.
--
-- KEYS     one per check, in the order of the checks; they share a slot.
-- ARGV[1]  JSON: [policies, groups].
--   policies  one array each: code, 1 if shadow, limit, window in us, burst, then the algorithm's own numbers.
--   groups    flat: not_after (us), 1 to charge or 0 to peek, number of checks, then for each check:
--             index of its policy, least and most units. Plain decisions ask least = most = cost; a lease takes
--             what there is between the two, the same for all checks of its group.
-- Reply    one string of little-endian doubles, all whole: TIME in us, then for each check: 1 allowed, 0 denied or
--          -1 too late (nothing was read or charged); units granted; remaining; retry (-1 never), replenish, reset
--          and delay in us.
--
-- Denials, peeks and groups that come too late write nothing. Every write sets an expiry.
local spread = unpack
local pack, unpack = struct.pack, struct.unpack
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

local time = redis.call('TIME') -- @live
local now = time[1] * 1000000 + time[2] -- @live
--@timed local now = tonumber(ARGV[2])

-- floor(a * b / c), exact past 2^53 too: long division in base 128 (a < 2^35, b and c <= 400 days).
local function muldiv(a, b, c)
  if a * b < 9007199254740992 then
    return floor(a * b / c)
  end
  local quotient, rest, place = 0, 0, 268435456
  while place >= 1 do
    local part = rest * 128 + floor(a / place) % 128 * b
    quotient = quotient * 128 + floor(part / c)
    rest = part % c
    place = place / 128
  end
  return quotient
end

-- One policy's answer: allowed, remaining, retry, replenish, reset, delay, the state to store once charged, and how
-- long in us to keep it if not until reset.
-- Each algorithm is a branch with raw (stored value or false), cost, policy, limit, window and burst in scope.
local function step(raw, cost, policy)
  local code, limit, window, burst = policy[1], policy[3], policy[4], policy[5]
  if limit == 0 then
    return false, 0, -1, 0, 0, 0
  end
  --@algorithms
end

local call = cjson.decode(ARGV[1])
local policies, groups = call[1], call[2]
local stored = redis.call('MGET', spread(KEYS))
local written = {} -- by key: a later group of this call sees what an earlier one stored
local reply = { pack('<d', now) }
local at, index = 1, 0
local size = #groups

while at < size do
  local not_after, charge, count = groups[at], groups[at + 1] == 1, groups[at + 2]
  at = at + 3
  if now > not_after then
    for _ = 1, count do
      reply[#reply + 1] = pack('<ddddddd', -1, 0, 0, 0, 0, 0, 0)
    end
    at = at + 3 * count
    index = index + count
  else
    local checks, admitted, lease = {}, true, 1 / 0
    for i = 1, count do
      local policy, least, most = policies[groups[at]], groups[at + 1], groups[at + 2]
      at = at + 3
      index = index + 1
      local key = KEYS[index]
      local raw = written[key] or stored[index]
      local units, answer = most, { step(raw, most, policy) }
      if not answer[1] and least < most and answer[2] >= least then
        units = answer[2]
        answer = { step(raw, units, policy) }
        lease = min(lease, units)
      end
      if not answer[1] and policy[2] == 0 then
        admitted = false
      end
      checks[i] = { key, raw, policy, units, answer }
    end
    for i = 1, count do
      local check = checks[i]
      local key, raw, policy, units, answer = check[1], check[2], check[3], check[4], check[5]
      local granted = 0
      if answer[1] then
        granted = admitted and min(units, lease) or 0
        if granted < units then
          answer = { step(raw, granted, policy) }
        end
        local state = answer[7]
        if charge and state then
          local ttl = ceil((answer[8] or answer[5]) / 1000) + 1000
          --@timed ttl = ttl + 3600000
          redis.call('SET', key, state, 'PX', ttl)
          written[key] = state
        end
      end
      reply[#reply + 1] =
        pack('<ddddddd', answer[1] and 1 or 0, granted, answer[2], answer[3], answer[4], answer[5], answer[6])
    end
  end
end

return table.concat(reply)
