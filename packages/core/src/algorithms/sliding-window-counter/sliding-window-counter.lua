-- sliding-window-counter (sc)
-- State: '<dI4I4' index of the window since the epoch, units of the previous and of the current window.
local index = floor(now / window)
local before, current = 0, 0
if raw and #raw == 16 then
  local i, p, c = unpack('<dI4I4', raw)
  if charged_at then
    local charged = floor(charged_at / window)
    if i == charged then
      return pack('<dI4I4', i, p, max(0, c - cost))
    elseif i == charged + 1 then
      return pack('<dI4I4', i, max(0, p - cost), c)
    end
  elseif i % 1 == 0 and i >= index - 1 and i * window <= now + window and max(p, c) <= 1000000000 then
    if i < index then
      before = c
    else
      index = i
      before = p
      current = min(c, limit)
    end
  end
end
if charged_at then
  return nil
end
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
