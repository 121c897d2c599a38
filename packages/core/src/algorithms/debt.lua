-- A debt in time, the state of gcra and leaky-bucket: the moment at which it is paid. '<d' in us, '<dI4I4' with a
-- remainder in steps and their unit, or '<dI4I4d' with the time to fill of the policy that stored it too, where that is
-- longer than the window.
-- Own numbers: steps per unit, steps per us, unit of the steps, time to fill in us if longer than the window or 0.
-- With is_queue a charge is given back only if nobody came since.
local per_unit, per_us, unit = n1, n2, n3
local full = burst * per_unit
-- How far ahead of now the debt is paid: whole us, and steps; and the time to fill that was stored with it.
local ahead, steps, long = 0, 0, 0
local size = raw and #raw
if size == 8 or size == 16 or size == 24 then
  local paid, rest, of
  if size == 8 then
    paid = unpack('<d', raw)
    rest = 0
  elseif size == 16 then
    paid, rest, of = unpack('<dI4I4', raw)
  else
    paid, rest, of, long = unpack('<dI4I4d', raw)
    long = long <= 3155761000000000 and long or 0 -- no policy takes longer: 100 years, and 1 us a unit of rounding
  end
  if rest > 0 and of ~= unit then
    paid = paid + 1
    rest = 0
  end
  local us = paid - now
  -- A debt beyond what this policy could store may be that of a larger burst, and stands.
  if us >= 0 and us % 1 == 0 and rest < per_us and ((us - window) * per_us + rest <= full or us - window < long) then
    ahead = us
    steps = rest
  else
    long = 0
  end
end
local debt = ahead * per_us + steps
local stores = false
if charged_until then
  local left = charged_until - now
  if left > 0 and debt > 0 and not (is_queue and left ~= (steps > 0 and ahead + 1 or ahead)) then
    -- What the charge still owes, since the oldest debt is paid first.
    local owed = left * per_us
    if owed > cost * per_unit then
      owed = cost * per_unit
    end
    -- In us and steps apart: the debt of a larger burst may pass 2^53 steps.
    local part = owed % per_us
    ahead = ahead - (owed - part) / per_us
    steps = steps - part
    if steps < 0 then
      ahead = ahead - 1
      steps = steps + per_us
    end
    if ahead < 0 then
      ahead = 0
      steps = 0
    end
    stores = true
  end
else
  local need = cost * per_unit
  if debt > full then
    debt = full
  end
  allowed = debt + need <= full
  if not allowed then
    local free = (full - need - steps) / per_us
    retry = cost > burst and -1 or ahead - (free - free % 1)
  elseif cost > 0 then
    debt = debt + need
    steps = debt % per_us
    ahead = (debt - steps) / per_us
    long = n4
    stores = true
  end
  remaining = (full - debt) / per_unit
  remaining = remaining - remaining % 1
  if remaining < burst then
    local free = (full - (remaining + 1) * per_unit - steps) / per_us
    replenish = ahead - (free - free % 1)
  end
  reset = steps > 0 and ahead + 1 or ahead
end
if stores then
  if long > 0 then
    state = pack('<dI4I4d', now + ahead, steps, unit, long)
  elseif steps > 0 then
    state = pack('<dI4I4', now + ahead, steps, unit)
  else
    state = pack('<d', now + ahead)
  end
end
