-- block (bk)
-- State: '<d' the end of the block in us. Extra numbers: length in us of the block that a charge sets, or 0 to only look.
local length = policy[6]
if charged_until then
  return nil
end
if length > 0 and cost > 0 then
  return true, 0, 0, length, length, 0, pack('<d', now + length)
end
local left = 0
if raw and #raw == 8 then
  local ends = unpack('<d', raw)
  if ends % 1 == 0 and ends > now and ends <= now + 3155760000000000 then
    left = ends - now
  end
end
return left == 0, left == 0 and 1 or 0, left, left, left, 0
