-- sliding-window-ring (sr)
-- State: '<d' the newest slice since the epoch, then an I4 for each slice from the oldest to the newest.
-- Extra numbers: slices.
local slices = policy[6]
local form = '<d' .. string.rep('I4', slices + 1)
local function starts(s)
  local place = s % slices
  return (s - place) / slices * window + window - muldiv(slices - place, window, slices)
end
local function slice_of(us)
  return slices * floor(us / window) + muldiv(slices, us % window, window)
end
local slice = slice_of(now)
local counts, used = {}, 0
if raw and #raw == 12 + 4 * slices then
  local stored = { unpack(form, raw) }
  local s, sum = stored[1], 0
  for i = 1, slices + 1 do
    sum = sum + stored[1 + i]
  end
  if s % 1 == 0 and s >= slice - slices and starts(s) <= now + window and sum <= 1000000000 then
    local passed = max(0, slice - s)
    slice = s + passed
    for i = 1 + passed, slices + 1 do
      counts[i - passed] = stored[1 + i]
      used = used + stored[1 + i]
    end
  end
end
for i = #counts + 1, slices + 1 do
  counts[i] = 0
end
if charged_until then
  -- A slice is whole again when the slice after the next `slices` begins.
  local place = slice_of(charged_until) - slice
  if (counts[place] or 0) == 0 then
    return nil
  end
  counts[place] = max(0, counts[place] - cost)
  return pack(form, slice, spread(counts))
end
local allowed = cost <= max(0, limit - used)
if allowed then
  counts[slices + 1] = counts[slices + 1] + cost
  used = used + cost
end
local remaining = max(0, limit - used)
-- A slice stops counting when the slice after the next `slices` begins.
local function ends(place)
  return starts(slice + place) - now
end
local function wait(units)
  local freed = 0
  for place = 1, slices + 1 do
    freed = freed + counts[place]
    if used - freed + units <= limit then
      return ends(place)
    end
  end
end
local retry, replenish, reset = 0, 0, 0
if not allowed then
  retry = cost > limit and -1 or wait(cost)
end
if remaining < limit then
  replenish = wait(remaining + 1)
end
if used > 0 then
  local place = slices + 1
  while counts[place] == 0 do
    place = place - 1
  end
  reset = ends(place)
end
return allowed, remaining, retry, replenish, reset, 0,
  allowed and cost > 0 and pack(form, slice, spread(counts))
