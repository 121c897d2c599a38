-- sliding-window-ring (sr)
-- State: '<dI4' the newest slice since the epoch and the units of all slices, then an I4 for each slice from the oldest that
-- counts any up to the newest.
-- Own numbers: slices.
local slices = n1
local size = slices + 1
local function starts(s)
  local place = s % slices
  return (s - place) / slices * window + window - muldiv(slices - place, window, slices)
end
local function slice_of(us)
  local turn = us / window
  return slices * (turn - turn % 1) + muldiv(slices, us % window, window)
end
local slice = slice_of(now)
-- Of the counts in ring, each of 4 bytes: where the oldest begins that still counts, and the newest; what they add up to; and
-- how many slices have passed since the newest.
local ring, first, last, used, passed = '', 13, 9, 0, 0
local length = raw and #raw or 0
if length > 12 and length <= 12 + 4 * size and length % 4 == 0 then
  local s, sum = unpack('<dI4', raw)
  if s % 1 == 0 and s >= slice - slices and starts(s) <= now + window and sum <= 1000000000 then
    ring = raw
    last = length - 3
    used = sum
    if slice > s then
      passed = slice - s
      local over = last - 4 * (slices - passed)
      while first < over do
        used = used - unpack('<I4', ring, first)
        first = first + 4
      end
    else
      slice = s
    end
    while first <= last and unpack('<I4', ring, first) == 0 do
      first = first + 4
    end
  end
end
local held = 0
if charged_until then
  -- A slice is whole again when the slice after the next `slices` begins.
  local there = last - 4 * (slice - passed - slice_of(charged_until) + size)
  if there >= first and there <= last then
    held = unpack('<I4', ring, there)
  end
  if held > 0 then
    local left = held > cost and held - cost or 0
    used = used - held + left
    local rest = there + 4
    if left == 0 and there == first then
      while rest <= last and unpack('<I4', ring, rest) == 0 do
        rest = rest + 4
      end
      state = ''
      if rest > last then
        passed = 1 -- a zero for the newest, as none other counts
      end
    else
      state = string.sub(ring, first, there - 1) .. pack('<I4', left)
    end
    state = pack('<dI4', slice, used) .. state .. string.sub(ring, rest) .. string.rep('\0', 4 * passed)
  end
else
  if passed == 0 and first <= last then
    held = unpack('<I4', ring, last)
  end
  allowed = cost <= limit - used or cost == 0
  if allowed and cost > 0 then
    held = held + cost
    used = used + cost
    state = pack('<dI4', slice, used)
    if first > last then
      state = state .. pack('<I4', held)
    elseif passed == 0 then
      state = state .. string.sub(ring, first, -5) .. pack('<I4', held)
    else
      state = state .. string.sub(ring, first) .. string.rep('\0', 4 * passed - 4) .. pack('<I4', held)
    end
  end
  if used < limit then
    remaining = limit - used
  end
  -- A slice stops counting when the slice after the next `slices` begins. Where all others free too little, the newest does.
  local fits = remaining + 1
  for pass = 1, allowed and 1 or 2 do
    local wait = pass == 1 and 0 or -1
    if fits <= limit then
      local there, over = first, used + fits - limit
      while there <= last do
        over = over - unpack('<I4', ring, there)
        if over <= 0 then
          break
        end
        there = there + 4
      end
      local freed = there > last and slice or slice - passed - (last - there) / 4
      wait = starts(freed + size) - now
    end
    if pass == 1 then
      replenish = wait
    else
      retry = wait
    end
    fits = cost
  end
  if used > 0 then
    local newest = slice
    if held == 0 then
      local there = last
      while there > first and unpack('<I4', ring, there) == 0 do
        there = there - 4
      end
      newest = slice - passed - (last - there) / 4
    end
    reset = starts(newest + size) - now
  end
end
