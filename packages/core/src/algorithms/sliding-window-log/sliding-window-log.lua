-- sliding-window-log (sl)
-- State: a list of '<I7I4'. The head is 0 and the units of the entries that were trimmed; each further element is the
-- time of an entry in us, never falling, and the units up to and including it. Sums are modulo 2^32.
local size = redis.pcall('LLEN', key)
if type(size) == 'table' and not string.find(size.err, 'WRONGTYPE', 1, true) then
  redis.call('LLEN', key) -- a refusal of the server's is no state: it fails the call
end
if type(size) ~= 'number' then
  size = 0 -- a value of another type, or elements that are not ours, count as none
end
local intact = true
local function entry(i)
  local element = redis.call('LINDEX', key, i)
  if element and #element == 11 then
    return unpack('<I7I4', element)
  end
  intact = false
  return 0, 0
end
-- The first of the places from low to before high that passes the test, else high.
local function search(low, high, passes)
  while low < high do
    local middle = floor((low + high) / 2)
    if passes(entry(middle)) then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end
if charged_until then
  if size < 2 or charged_until <= now then
    return nil
  end
  local charged = charged_until - window
  local from = search(1, size, function(time)
    return time >= charged
  end)
  local to = search(from, size, function(time)
    return time > charged
  end)
  local _, before = entry(from - 1)
  local _, sum = entry(to - 1)
  local units = (sum - before) % 4294967296
  -- Of the units of that moment these stay: the entries before `stay`, and what they lack to it in one more.
  local rest = max(0, units - cost)
  local stay = search(from, to, function(_, upto)
    return (upto - before) % 4294967296 > rest
  end)
  local _, staying = entry(stay - 1)
  if from == to or not intact or units > 100000 then
    return nil
  end
  return function()
    local later = {}
    if (staying - before) % 4294967296 < rest then
      later[1] = pack('<I7I4', charged, (before + rest) % 4294967296)
    end
    for _, element in ipairs(redis.call('LRANGE', key, to, -1)) do
      if #element == 11 then
        local time, upto = unpack('<I7I4', element)
        later[#later + 1] = pack('<I7I4', time, (upto - units + rest) % 4294967296)
      end
    end
    redis.call('LTRIM', key, 0, stay - 1)
    for i = 1, #later, 1000 do
      redis.call('RPUSH', key, spread(later, i, min(i + 999, #later)))
    end
  end
end
local first, last, used, gone, newest = 1, 1, 0, 0, 0
if size > 1 then
  -- Entries more than a window ahead of the clock count as none; those of before the window have aged out.
  last = search(1, size, function(time)
    return time > now + window
  end)
  first = search(1, last, function(time)
    return time > now - window
  end)
  local _, sum
  newest, sum = entry(last - 1)
  _, gone = entry(first - 1)
  used = (sum - gone) % 4294967296
  if not intact or used > 100000 then
    first, last, used = 1, 1, 0
  end
end
if used == 0 then
  newest, gone = 0, 0
end
local kept = used
local allowed = cost <= max(0, limit - used)
local held, ending = used, last
if allowed and cost > 0 then
  used = used + cost
  held, newest = used, max(newest, now)
elseif used > 0 and last < size then
  -- Entries ahead of the clock are gone after a charge; without one they count again before others have aged out.
  local sum
  newest, sum = entry(size - 1)
  held, ending = (sum - gone) % 4294967296, size
end
local remaining = max(0, limit - used)
-- First moment at which this many units fit: when enough of the oldest entries have aged out.
local function wait(units)
  local i = search(first, ending, function(_, sum)
    return held - (sum - gone) % 4294967296 + units <= limit
  end)
  local time = newest
  if i < ending then
    time = entry(i)
  end
  return time + window - now
end
local retry, replenish, reset = 0, 0, 0
if not allowed then
  retry = cost > limit and -1 or wait(cost)
end
if remaining < limit then
  replenish = wait(remaining + 1)
end
if used > 0 then
  reset = newest + window - now
end
return allowed, remaining, retry, replenish, reset, 0, allowed and cost > 0 and function()
  if kept == 0 then
    redis.call('DEL', key)
    redis.call('RPUSH', key, pack('<I7I4', 0, 0))
  else
    if last < size then
      redis.call('LTRIM', key, 0, last - 1)
    end
    if first > 1 then
      redis.call('LTRIM', key, first - 1, -1)
      redis.call('LSET', key, 0, pack('<I7I4', 0, gone))
    end
  end
  redis.call('RPUSH', key, pack('<I7I4', newest, (gone + used) % 4294967296))
end
