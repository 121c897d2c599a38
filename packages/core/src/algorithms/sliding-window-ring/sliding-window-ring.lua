-- sliding-window-ring (sr)
-- State: '<d' the newest slice since the epoch, then an I4 for each slice from the oldest to the newest.
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
-- The count of a place, 1 for the oldest to size for the newest, is at this many more: as many slices have passed.
local counts, passed, used = {}, 0, 0
if raw and #raw == 8 + 4 * size then
  local s = unpack('<d', raw)
  if s % 1 == 0 and s >= slice - slices and starts(s) <= now + window then
    counts = { unpack('<' .. string.rep('I4', size), raw, 9) }
    counts[size + 1] = nil
    local sum = 0
    for i = 1, size do
      sum = sum + counts[i]
    end
    if sum > 1000000000 then
      counts = {}
    else
      used = sum
      if slice > s then
        passed = slice - s
        for i = 1, passed do
          used = used - counts[i]
        end
      else
        slice = s
      end
    end
  end
end
-- The place whose count changes, and to how many units.
local changed, units_there
if charged_until then
  -- A slice is whole again when the slice after the next `slices` begins.
  local place = slice_of(charged_until) - slice
  local held = place >= 1 and counts[place + passed] or 0
  if held > 0 then
    changed, units_there = place, held > cost and held - cost or 0
  end
else
  allowed = cost <= limit - used or cost == 0
  if allowed and cost > 0 then
    local held = (counts[size + passed] or 0) + cost
    used = used + cost
    counts[size + passed] = held
    changed, units_there = size, held
  end
  if used < limit then
    remaining = limit - used
  end
  -- A slice stops counting when the slice after the next `slices` begins.
  local fits = remaining + 1
  for pass = 1, allowed and 1 or 2 do
    local wait = pass == 1 and 0 or -1
    if fits <= limit then
      local freed, place = 0, 0
      repeat
        place = place + 1
        freed = freed + (counts[place + passed] or 0)
      until used - freed + fits <= limit
      wait = starts(slice + place) - now
    end
    if pass == 1 then
      replenish = wait
    else
      retry = wait
    end
    fits = cost
  end
  if used > 0 then
    local place = size
    while (counts[place + passed] or 0) == 0 do
      place = place - 1
    end
    reset = starts(slice + place) - now
  end
end
if changed then
  local held = string.rep('\0', 4 * size)
  if counts[1] then
    held = string.sub(raw, 9 + 4 * passed) .. string.rep('\0', 4 * passed)
  end
  state = pack('<d', slice)
    .. string.sub(held, 1, 4 * changed - 4)
    .. pack('<I4', units_there)
    .. string.sub(held, 4 * changed + 1)
end
