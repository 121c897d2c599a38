-- sliding-window-log (sl)
-- State: a list of '<I7I3'. The head is 0 and the units of the entries that were trimmed; each further element is the
-- time of an entry in us, never falling, and the units up to and including it. Sums are modulo 2^24, far beyond what a
-- log holds.
local size = redis.pcall('llen', key)
if type(size) == 'table' and not string.find(size.err, 'WRONGTYPE', 1, true) then
  call('llen', key) -- a refusal of the server's is no state: it fails the call
end
if type(size) ~= 'number' then
  size = 0 -- a value of another type, or elements that are not ours, count as none
end
local times, sums, intact = {}, {}, true -- of the entries that were read, by place
local function entry(i)
  if not times[i] then
    local element = call('lindex', key, i)
    if element and #element == 10 then
      times[i], sums[i] = unpack('<I7I3', element)
    else
      intact = false
      times[i], sums[i] = 0, 0
    end
  end
  return times[i], sums[i]
end
-- The first of the places from low to before high that passes the test, else high. It is looked for from low in steps that
-- double, since few entries have aged out as a rule, then by halves.
local function search(low, high, passes)
  local step = 0
  while low < high do
    local place = step and low + step
    if not place or place >= high then
      place = (low + high - (low + high) % 2) / 2
      step = nil
    end
    if passes(entry(place)) then
      high = place
      step = nil
    else
      low = place + 1
      step = step and 2 * step + 1
    end
  end
  return low
end
if charged_until then
  if size > 1 and charged_until > now then
    local charged = charged_until - window
    local from = search(1, size, function(time)
      return time >= charged
    end)
    local to = search(from, size, function(time)
      return time > charged
    end)
    local _, before = entry(from - 1)
    local _, sum = entry(to - 1)
    local there = (sum - before) % 16777216
    -- Of the units of that moment these stay: the entries before `stay`, and what they lack to it in one more.
    local rest = there > cost and there - cost or 0
    local stay = search(from, to, function(_, upto)
      return (upto - before) % 16777216 > rest
    end)
    local _, staying = entry(stay - 1)
    if from < to and intact and there <= 100000 then
      state = true
      edit = function()
        local later = {}
        if (staying - before) % 16777216 < rest then
          later[1] = pack('<I7I3', charged, (before + rest) % 16777216)
        end
        for _, element in ipairs(call('lrange', key, to, -1)) do
          if #element == 10 then
            local time, upto = unpack('<I7I3', element)
            later[#later + 1] = pack('<I7I3', time, (upto - there + rest) % 16777216)
          end
        end
        call('ltrim', key, 0, stay - 1)
        for i = 1, #later, 1000 do
          call('rpush', key, spread(later, i, math.min(i + 999, #later)))
        end
      end
    end
  end
else
  local first, last, used, gone, newest = 1, 1, 0, 0, 0
  if size > 1 then
    -- Entries more than a window ahead of the clock count as none; those of before the window have aged out.
    last = size
    if entry(size - 1) > now + window then
      last = search(1, size, function(time)
        return time > now + window
      end)
    end
    first = search(1, last, function(time)
      return time > now - window
    end)
    local _, sum
    newest, sum = entry(last - 1)
    _, gone = entry(first - 1)
    used = (sum - gone) % 16777216
    if not intact or used > 100000 then
      first, last, used = 1, 1, 0
    end
  end
  if used == 0 then
    newest, gone = 0, 0
  end
  local before = used
  allowed = cost <= limit - used or cost == 0
  local held, ending = used, last
  if allowed and cost > 0 then
    used = used + cost
    held, newest = used, newest > now and newest or now
  elseif used > 0 and last < size then
    -- Entries ahead of the clock are gone after a charge; without one they count again before others have aged out.
    local sum
    newest, sum = entry(size - 1)
    held, ending = (sum - gone) % 16777216, size
  end
  if used < limit then
    remaining = limit - used
  end
  local fits = remaining + 1
  for pass = 1, allowed and 1 or 2 do
    local wait = pass == 1 and 0 or -1
    if fits <= limit then
      -- When enough of the oldest entries have aged out.
      local i = search(first, ending, function(_, sum)
        return held - (sum - gone) % 16777216 + fits <= limit
      end)
      local time = newest
      if i < ending then
        time = entry(i)
      end
      wait = time + window - now
    end
    if pass == 1 then
      replenish = wait
    else
      retry = wait
    end
    fits = cost
  end
  if used > 0 then
    reset = newest + window - now
  end
  if allowed and cost > 0 then
    state = true
    edit = function()
      if before == 0 then
        call('del', key)
        call('rpush', key, pack('<I7I3', 0, 0))
      else
        if last < size then
          call('ltrim', key, 0, last - 1)
        end
        if first > 1 then
          call('ltrim', key, first - 1, -1)
          call('lset', key, 0, pack('<I7I3', 0, gone))
        end
      end
      call('rpush', key, pack('<I7I3', newest, (gone + used) % 16777216))
    end
  end
end
