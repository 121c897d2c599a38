-- sliding-window-log (sl)
-- State: a list of '<I7I4'. The head is 0 and the units of the entries that were trimmed; each further element is the
-- time of an entry in us, never falling, and the units up to and including it. Sums are modulo 2^32.
local size = redis.pcall('LLEN', key)
local intact = type(size) == 'number' -- a value of another type, or elements that are not ours, count as none
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
if charged_at then
  if not intact then
    return nil
  end
  local i = search(1, size, function(time)
    return time >= charged_at
  end)
  local _, before = entry(i - 1)
  while i < size do
    local time, sum = entry(i)
    if time ~= charged_at then
      return nil
    elseif (sum - before) % 4294967296 >= cost then
      break
    end
    before = sum
    i = i + 1
  end
  if i >= size then
    return nil
  end
  return function()
    for place = i, size - 1 do
      local time, sum = entry(place)
      if place == size - 1 and place == i and (sum - before) % 4294967296 == cost then
        redis.call('RPOP', key)
      else
        redis.call('LSET', key, place, pack('<I7I4', time, (sum - cost) % 4294967296))
      end
    end
  end
end
local first, last, used, gone, newest = 1, 1, 0, 0, 0
if intact and size > 1 then
  local sum
  last = size
  newest, sum = entry(last - 1)
  if newest > now + window then
    last = search(1, size, function(time)
      return time > now + window
    end)
    newest, sum = entry(last - 1)
  end
  first = search(1, last, function(time)
    return time > now - window
  end)
  local _
  _, gone = entry(first - 1)
  used = (sum - gone) % 4294967296
  if not intact or used > 100000 then
    first, last, used = 1, 1, 0
  end
end
if used == 0 then
  newest, gone = 0, 0
end
local allowed = cost <= max(0, limit - used)
local kept = used
if allowed and cost > 0 then
  used = used + cost
  newest = max(newest, now)
end
local remaining = max(0, limit - used)
-- First moment at which this many units fit: when enough of the oldest entries have aged out.
local function wait(units)
  local i = search(first, last, function(_, sum)
    return used - (sum - gone) % 4294967296 + units <= limit
  end)
  local time = newest
  if i < last then
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
return allowed, remaining, retry, replenish, reset, 0, allowed and cost > 0 and function(ttl)
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
  redis.call('PEXPIRE', key, ttl)
end
