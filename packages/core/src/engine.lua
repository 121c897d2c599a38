-- Decides groups of checks, each group all or nothing, on one clock.
--
-- KEYS     one per check, in the order of the checks; they share a slot.
-- ARGV[1]  JSON: [policies, groups].
--   policies  one array each: code, 1 if shadow, limit, window in us, burst, then the algorithm's own numbers.
--   groups    flat: not_after (us), mode, number of checks, then for each check its policy's index and,
--             to peek (mode 0) or charge (1): least and most units. Plain decisions ask least = most = cost; a lease
--             takes what there is between the two, the same for all checks of its group.
--             to refund (2): units, when they were charged (us), and the reset that the charge was answered with.
-- Reply    one string of little-endian doubles, all whole: TIME in us, then for each check: 1 allowed, 0 denied or
--          -1 too late (nothing was read or charged); units granted; remaining; retry (-1 never), replenish, reset
--          and delay in us. Of a refund only the first two count.
--
-- Denials, peeks and groups that come too late write nothing. Every write sets an expiry.
local spread = unpack
local pack, unpack = struct.pack, struct.unpack
local floor, ceil, min, max = math.floor, math.ceil, math.min, math.max

local clock = redis.call('TIME') -- @live
local now = clock[1] * 1000000 + clock[2] -- @live
--@timed local now = tonumber(ARGV[2])

--@shared

-- One policy's answer: allowed, remaining, retry, replenish, reset, delay, the state to store once charged, and how
-- long in us to keep it if not until reset. A state is a string, or a function that edits a list in place. With
-- charged_until, when a charge would have been whole again: only the state once cost of it is given back, if any is.
-- Each algorithm is a branch with raw (stored value or false), cost, policy, limit, window and burst in scope.
local function step(raw, cost, policy, key, charged_until)
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

-- The value to store, nil for a list, which is edited at once.
local function value_of(state)
  if type(state) == 'string' then
    return state
  end
  state()
end

local function store(key, value, keep)
  local ttl = ceil(keep / 1000) + 1000
  --@timed ttl = ttl + 3600000
  if value then
    redis.call('SET', key, value, 'PX', ttl)
    written[key] = value
  else
    redis.call('PEXPIRE', key, ttl)
  end
end

local reply = { pack('<d', now) }
local at, index = 1, 0
local size = #groups

while at < size do
  local not_after, mode, count = groups[at], groups[at + 1], groups[at + 2]
  at = at + 3
  if now > not_after then
    for _ = 1, count do
      reply[#reply + 1] = pack('<ddddddd', -1, 0, 0, 0, 0, 0, 0)
    end
    at = at + (mode == 2 and 4 or 3) * count
    index = index + count
  elseif mode == 2 then
    for i = 1, count do
      local policy, units = policies[groups[at]], groups[at + 1]
      local key = KEYS[index + i]
      local charged_until = groups[at + 2] + groups[at + 3]
      at = at + 4
      local state = step(written[key] or stored[index + i], units, policy, key, charged_until)
      if state then
        local value = value_of(state)
        local answer = { step(value, 0, policy, key) }
        store(key, value, answer[8] or answer[5])
      end
      reply[#reply + 1] = pack('<ddddddd', 1, state and units or 0, 0, 0, 0, 0, 0)
    end
    index = index + count
  else
    local checks, admitted, lease = {}, true, 1 / 0
    for i = 1, count do
      local policy, least, most = policies[groups[at]], groups[at + 1], groups[at + 2]
      at = at + 3
      index = index + 1
      local key = KEYS[index]
      local raw = written[key] or stored[index]
      local units, answer = most, { step(raw, most, policy, key) }
      if not answer[1] and least < most and answer[2] >= least then
        units = answer[2]
        answer = { step(raw, units, policy, key) }
        if policy[2] == 0 then
          lease = min(lease, units)
        end
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
          answer = { step(raw, granted, policy, key) }
        end
        local state = answer[7]
        if mode == 1 and state then
          store(key, value_of(state), answer[8] or answer[5])
        end
      end
      reply[#reply + 1] =
        pack('<ddddddd', answer[1] and 1 or 0, granted, answer[2], answer[3], answer[4], answer[5], answer[6])
    end
  end
end

return table.concat(reply)
