-- leaky-bucket (lb)
-- State: a debt in time, see debt.lua: the first free departure.
local is_queue = true
--@include debt.lua
if state and not charged_until then
  -- It leaves with the last of the departures that it takes.
  delay = (debt - n1) / n2
  delay = delay + -delay % 1
end
