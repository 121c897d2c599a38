-- token-bucket (tb)
-- State: '<ddI4I4' last refill in us, steps beyond whole tokens, whole tokens, unit of the steps (plus 2^30 once charges
-- under several units have met).
-- Own numbers: steps per unit, steps per us, unit of the steps, and one that only gcra reads.
local per_unit, per_us = n1, n2
local full = burst * per_unit
local level, last, unit = full, now, n3
local mixed = unit + 1073741824
if raw and #raw == 24 then
  local l, steps, tokens, u = unpack('<ddI4I4', raw)
  if u ~= unit and u ~= mixed then
    steps = 0
  end
  local whole = l % 1 == 0 and steps % 1 == 0
  if whole and l >= 0 and l <= now + window and steps >= 0 and steps < per_unit and tokens <= 1000000000 then
    if u ~= unit then
      unit = mixed
    end
    level = tokens * per_unit + steps
    if level > full then
      level = full
    end
    if l > now then
      last = l
    end
    local elapsed = last - l
    if elapsed < (full - level) / per_us then
      level = level + elapsed * per_us
    else
      level = full
    end
  end
end
local changed = false
if charged_until then
  -- What of the charge was not refilled since: the oldest debt is refilled first.
  local owed = (charged_until - last) * per_us
  if owed > cost * per_unit then
    owed = cost * per_unit
  end
  changed = owed > 0 and level < full
  if changed then
    level = level + owed < full and level + owed or full
  end
else
  local need = cost * per_unit
  local behind = last - now
  allowed = level >= need
  if not allowed then
    local wait = (need - level) / per_us
    retry = cost > burst and -1 or behind + wait + -wait % 1
  elseif cost > 0 then
    level, changed = level - need, true
  end
  remaining = level / per_unit
  remaining = remaining - remaining % 1
  if remaining < burst then
    local wait = ((remaining + 1) * per_unit - level) / per_us
    replenish = behind + wait + -wait % 1
  end
  if level < full then
    local wait = (full - level) / per_us
    reset = behind + wait + -wait % 1
  end
  if unit == mixed then
    -- Whole for this policy may be far from whole for one with another limit: kept until an empty bucket were full.
    local wait = full / per_us
    keep = behind + wait + -wait % 1
  end
end
if changed then
  local tokens = level / per_unit
  tokens = tokens - tokens % 1
  state = pack('<ddI4I4', last, level - tokens * per_unit, tokens, unit)
end
