-- fixed-window (fw)
-- State: '<dI4' start of the window in us, units used in it. Own numbers: 1 = windows aligned to the epoch.
local start, used = now, 0
if n1 == 1 then
  start = now - now % window
end
if raw and #raw == 12 then
  local s, u = unpack('<dI4', raw)
  if s >= 0 and s % 1 == 0 and s + window > now and s <= now + window and u > 0 and u <= 1000000000 then
    start, used = s, u
  end
end
local ends = start + window
if charged_until then
  if used > 0 and charged_until == ends then
    state = pack('<dI4', start, used > cost and used - cost or 0)
  end
else
  if used > limit then
    used = limit
  end
  allowed = used + cost <= limit
  if not allowed then
    retry = cost > limit and -1 or ends - now
  elseif cost > 0 then
    used = used + cost
    state = pack('<dI4', start, used)
  end
  remaining = limit - used
  if used > 0 then
    replenish, reset = ends - now, ends - now
  end
end
