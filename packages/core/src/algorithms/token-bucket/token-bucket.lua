-- token-bucket (tb)
-- State: '<ddI4I4' last refill in us, steps beyond whole tokens, whole tokens, unit of the steps (plus 2^30 once charges
-- under several units have met).
-- Extra numbers: steps per unit, steps per us, unit of the steps, and one that only gcra reads.
local per_unit, per_us = policy[6], policy[7]
local full = burst * per_unit
local level, last, unit = full, now, policy[8]
local mixed = unit + 1073741824
if raw and #raw == 24 then
  local l, steps, tokens, u = unpack('<ddI4I4', raw)
  if u ~= unit and u ~= mixed then
    steps = 0
  end
  local whole = l % 1 == 0 and steps % 1 == 0
  if whole and l >= 0 and l <= now + window and steps >= 0 and steps < per_unit and tokens <= 1000000000 then
    unit = u == unit and unit or mixed
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
local function state_of(filled)
  local tokens = floor(filled / per_unit)
  return pack('<ddI4I4', last, filled - tokens * per_unit, tokens, unit)
end
if charged_until then
  -- What of the charge was not refilled since: the oldest debt is refilled first.
  local owed = min((charged_until - last) * per_us, cost * per_unit)
  return owed > 0 and level < full and state_of(min(level + owed, full))
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
-- Whole for this policy may be far from whole for one with another limit: kept until an empty bucket were full.
local keep = unit == mixed and behind + ceil(full / per_us) or nil
return allowed, remaining, retry, replenish, reset, 0, allowed and cost > 0 and state_of(level), keep
