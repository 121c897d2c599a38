-- block (bk)
-- State: '<d' the end of the block in us. Own numbers: length in us of the block that a charge sets, or 0 to only look.
if not charged_until then
  local left = 0
  if n1 > 0 and cost > 0 then
    replenish, reset, state = n1, n1, pack('<d', now + n1)
  else
    if raw and #raw == 8 then
      local ends = unpack('<d', raw)
      if ends % 1 == 0 and ends > now and ends <= now + 3155760000000000 then
        left = ends - now
      end
    end
    allowed, retry, replenish, reset = left == 0, left, left, left
    remaining = allowed and 1 or 0
  end
end
