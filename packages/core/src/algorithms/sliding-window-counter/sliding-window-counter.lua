-- sliding-window-counter (sc)
-- State: '<dI4I4' index of the window since the epoch, units of the previous and of the current window.
local index = now / window
index = index - index % 1
local before, current = 0, 0
if raw and #raw == 16 then
  local i, p, c = unpack('<dI4I4', raw)
  if i % 1 == 0 and i >= index - 1 and i * window <= now + window and p <= 1000000000 and c <= 1000000000 then
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
    state = pack('<dI4I4', index, before, current > cost and current - cost or 0)
  elseif charged == index - 1 and before > 0 then
    state = pack('<dI4I4', index, before > cost and before - cost or 0, current)
  end
else
  local previous = before
  if current > limit then
    current = limit
  end
  if previous > limit then
    previous = limit
  end
  local since = now - index * window
  remaining = limit - current - previous
  if previous > 0 and since > 0 then
    remaining = remaining + muldiv(previous, since, window)
  end
  if remaining < 0 then
    remaining = 0
  end
  allowed = cost <= remaining
  if allowed and cost > 0 then
    current = current + cost
    remaining = remaining - cost
    state = pack('<dI4I4', index, before, current)
  end
  -- When so many units fit: in this window, as the previous one fades; else in the next, as this one does.
  local fits = remaining + 1
  for pass = 1, allowed and 1 or 2 do
    local wait
    if current + fits <= limit then
      wait = window - muldiv(limit - current - fits, window, previous) - since
    elseif fits <= limit then
      wait = 2 * window - muldiv(limit - fits, window, current) - since
    end
    if pass == 1 then
      replenish = wait or 0
    else
      retry = wait or -1
    end
    fits = cost
  end
  if current > 0 then
    reset = 2 * window - since
  elseif previous > 0 then
    reset = window - since
  end
end
