-- sliding-window-counter (sc)
-- State: '<dI4I4' index of the window since the epoch, units of the previous and of the current window.
local index = floor(now / window)
local before, current = 0, 0
if raw and #raw == 16 then
  local i, p, c = unpack('<dI4I4', raw)
  if i % 1 == 0 and i >= index - 1 and i * window <= now + window and max(p, c) <= 1000000000 then
    if i < index then
      before = c
    else
      index, before, current = i, p, c
    end
  end
end
if charged_until then
  local charged = charged_until / window - 2
  if charged == index and current > 0 then
    return pack('<dI4I4', index, before, max(0, current - cost))
  elseif charged == index - 1 and before > 0 then
    return pack('<dI4I4', index, max(0, before - cost), current)
  end
  return nil
end
current = min(current, limit)
local previous = min(before, limit)
local since = now - index * window
local faded = muldiv(previous, max(0, since), window)
local remaining = max(0, limit - current - previous + faded)
local allowed = cost <= remaining
if allowed then
  current = current + cost
  remaining = remaining - cost
end
local retry, replenish, reset = 0, 0, 0
local units = remaining + 1
for pass = 1, 2 do
  local wait
  if current + units <= limit then
    wait = window - muldiv(limit - current - units, window, previous) - since
  elseif units <= limit then
    wait = 2 * window - muldiv(limit - units, window, current) - since
  end
  if pass == 1 then
    replenish = wait or 0
  else
    retry = wait or -1
  end
  if allowed then
    break
  end
  units = cost
end
if current > 0 then
  reset = 2 * window - since
elseif previous > 0 then
  reset = window - since
end
return allowed, remaining, retry, replenish, reset, 0, allowed and cost > 0 and pack('<dI4I4', index, before, current)
