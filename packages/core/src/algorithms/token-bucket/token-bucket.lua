-- token-bucket (tb)
-- State: '<ddI4I4' last refill in us, steps beyond whole tokens, whole tokens, unit of the steps.
-- Extra numbers: steps per unit, steps per us, unit of the steps.
local per_unit, per_us = policy[6], policy[7]
local full = burst * per_unit
local level, last = full, now
if raw and #raw == 24 then
  local l, steps, tokens, unit = unpack('<ddI4I4', raw)
  if l >= 0 and l % 1 == 0 and l <= now + window and steps >= 0 and steps % 1 == 0 then
    if unit ~= policy[8] then
      steps = 0
    end
    level = min(tokens * per_unit + steps, full)
    last = max(l, now)
    local elapsed = last - l
    if elapsed < (full - level) / per_us then
      level = level + elapsed * per_us
    else
      level = full
    end
  end
end
local need = cost * per_unit
local allowed = level >= need
if allowed then
  level = level - need
end
local remaining = floor(level / per_unit)
local behind = last - now
local retry, replenish, reset = 0, 0, 0
if not allowed then
  retry = cost > burst and -1 or behind + ceil((need - level) / per_us)
end
if remaining < burst then
  replenish = behind + ceil(((remaining + 1) * per_unit - level) / per_us)
end
if level < full then
  reset = behind + ceil((full - level) / per_us)
end
return allowed, remaining, retry, replenish, reset, 0,
  allowed and cost > 0 and pack('<ddI4I4', last, level - remaining * per_unit, remaining, policy[8])
