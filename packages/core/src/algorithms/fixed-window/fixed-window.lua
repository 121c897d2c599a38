-- fixed-window (fw)
-- State: '<dI4' start of the window in us, units used in it. Extra numbers: 1 = windows aligned to the epoch.
local start = now
if policy[6] == 1 then
  start = floor(now / window) * window
end
local used = 0
if raw and #raw == 12 then
  local s, u = unpack('<dI4', raw)
  if s >= 0 and s % 1 == 0 and s + window > now and s <= now + window and u > 0 and u <= 1000000000 then
    start, used = s, u
  end
end
if charged_until then
  return used > 0 and charged_until == start + window and pack('<dI4', start, max(0, used - cost))
end
used = min(used, limit)
local allowed = used + cost <= limit
if allowed then
  used = used + cost
end
local ends = start + window - now
local reset = used > 0 and ends or 0
local retry = 0
if not allowed then
  retry = cost > limit and -1 or ends
end
return allowed, limit - used, retry, reset, reset, 0, allowed and cost > 0 and pack('<dI4', start, used)
