-- gcra (gc)
-- State: '<d' the theoretical arrival time in us, or '<dI4I4' with a remainder in steps and their unit.
-- Extra numbers: steps per unit, steps per us, unit of the steps.
local per_unit, per_us = policy[6], policy[7]
local full = burst * per_unit
local debt = 0
if raw and (#raw == 8 or #raw == 16) then
  local tat, steps, unit = unpack('<d', raw), 0, policy[8]
  if #raw == 16 then
    tat, steps, unit = unpack('<dI4I4', raw)
  end
  if unit ~= policy[8] then
    tat, steps = tat + 1, 0
  end
  local ahead = tat - now
  if tat >= 0 and tat % 1 == 0 and ahead <= full / per_us + window then
    debt = min(max(0, ahead * per_us + steps), full)
  end
end
local need = cost * per_unit
local allowed = debt + need <= full
if allowed then
  debt = debt + need
end
local remaining = floor((full - debt) / per_unit)
local retry, replenish = 0, 0
if not allowed then
  retry = cost > burst and -1 or ceil((debt + need - full) / per_us)
end
if remaining < burst then
  replenish = ceil((debt + (remaining + 1) * per_unit - full) / per_us)
end
local next_state
if allowed and cost > 0 then
  local steps = debt % per_us
  local tat = now + (debt - steps) / per_us
  next_state = steps == 0 and pack('<d', tat) or pack('<dI4I4', tat, steps, policy[8])
end
return allowed, remaining, retry, replenish, ceil(debt / per_us), 0, next_state
