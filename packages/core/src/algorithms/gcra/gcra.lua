-- gcra (gc)
-- State: the theoretical arrival time: '<d' in us, '<dI4I4' with a remainder in steps and their unit, or '<dI4I4d' with
-- the time to fill of the policy that stored it too, where that is longer than the window.
-- Extra numbers: steps per unit, steps per us, unit of the steps, time to fill in us if longer than the window or 0.
local per_unit, per_us = policy[6], policy[7]
local full = burst * per_unit
local ahead, steps = 0, 0
if raw and (#raw == 8 or #raw == 16 or #raw == 24) then
  local tat, rest, unit, long = unpack('<d', raw), 0, policy[8], 0
  if #raw == 24 then
    tat, rest, unit, long = unpack('<dI4I4d', raw)
  elseif #raw == 16 then
    tat, rest, unit = unpack('<dI4I4', raw)
  end
  if unit ~= policy[8] and rest > 0 then
    tat, rest = tat + 1, 0
  end
  local us = tat - now
  local over = us - window
  -- A debt beyond what this policy could store may be that of a larger burst (filled within 100 years), and stands.
  local within = over * per_us + rest <= full or over < min(long, 3155760000000000)
  if us >= 0 and us % 1 == 0 and rest < per_us and within then
    ahead, steps = us, rest
  end
end
local debt = min(ahead * per_us + steps, full)
local need = cost * per_unit
local allowed = debt + need <= full
local charged = allowed and cost > 0
if charged then
  debt = debt + need
  steps = debt % per_us
  ahead = (debt - steps) / per_us
end
local remaining = floor((full - debt) / per_unit)
local retry, replenish = 0, 0
if not allowed then
  retry = cost > burst and -1 or ahead - floor((full - need - steps) / per_us)
end
if remaining < burst then
  replenish = ahead - floor((full - (remaining + 1) * per_unit - steps) / per_us)
end
local next_state
if charged then
  local tat, long = now + ahead, policy[9]
  if long > 0 then
    next_state = pack('<dI4I4d', tat, steps, policy[8], long)
  elseif steps > 0 then
    next_state = pack('<dI4I4', tat, steps, policy[8])
  else
    next_state = pack('<d', tat)
  end
end
return allowed, remaining, retry, replenish, steps > 0 and ahead + 1 or ahead, 0, next_state
