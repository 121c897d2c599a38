-- sliding-window-ring (sr)
-- State: '<dI4' the newest slice since the epoch and the units of all slices, then an I4 for each slice from the oldest to
-- the newest.
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
-- The count of a place, 1 for the oldest to size for the newest, is 4 bytes of counts at base + 4 * place; those beyond its
-- end are 0, as many slices have passed. Few of them are read: zeros are skipped by find, since a call for each is dearer.
local counts, base, passed, used = '', 9, 0, 0
if raw and #raw == 12 + 4 * size then
  local s, sum = unpack('<dI4', raw)
  if s % 1 == 0 and s >= slice - slices and starts(s) <= now + window and sum <= 1000000000 then
    counts = raw
    used = sum
    if slice > s then
      passed = slice - s
      base = 9 + 4 * passed
      local hit = string.find(raw, '[^%z]', 13)
      while hit and hit < base + 4 do
        hit = hit - (hit - 9) % 4
        used = used - unpack('<I4', raw, hit)
        hit = string.find(raw, '[^%z]', hit + 4)
      end
    else
      slice = s
    end
  end
end
local last = #counts - 3
-- The place whose count changes, and to how many units.
local changed, units_there
if charged_until then
  -- A slice is whole again when the slice after the next `slices` begins.
  local place = slice_of(charged_until) - slice
  local there = base + 4 * place
  local held = place >= 1 and there <= last and unpack('<I4', counts, there) or 0
  if held > 0 then
    changed, units_there = place, held > cost and held - cost or 0
    used = used - held + units_there
  end
else
  local held = passed == 0 and last > 0 and unpack('<I4', counts, last) or 0
  allowed = cost <= limit - used or cost == 0
  if allowed and cost > 0 then
    held = held + cost
    used = used + cost
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
      -- Where all older ones together free too little, the newest does.
      local freed, place, hit = 0, size, string.find(counts, '[^%z]', base + 4)
      while hit and hit < base + 4 * size do
        hit = hit - (hit - 9) % 4
        freed = freed + unpack('<I4', counts, hit)
        if used - freed + fits <= limit then
          place = (hit - base) / 4
          break
        end
        hit = string.find(counts, '[^%z]', hit + 4)
      end
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
    local there = last
    while held == 0 and there > base + 4 and unpack('<I4', counts, there) == 0 do
      there = there - 4
    end
    reset = starts(slice + (held > 0 and size or (there - base) / 4)) - now
  end
end
if changed then
  local rest
  if counts == '' then
    rest = string.rep('\0', 4 * size)
  else
    rest = string.sub(counts, base + 4) .. string.rep('\0', 4 * passed)
  end
  state = pack('<dI4', slice, used)
    .. string.sub(rest, 1, 4 * changed - 4)
    .. pack('<I4', units_there)
    .. string.sub(rest, 4 * changed + 1)
end
