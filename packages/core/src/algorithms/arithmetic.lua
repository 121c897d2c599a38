-- floor(a * b / c), exact past 2^53 too: long division in base 128 (a < 2^35, b and c <= 400 days).
local function muldiv(a, b, c)
  if a * b < 9007199254740992 then
    return floor(a * b / c)
  end
  local quotient, rest, place = 0, 0, 268435456
  while place >= 1 do
    local part = rest * 128 + floor(a / place) % 128 * b
    quotient = quotient * 128 + floor(part / c)
    rest = part % c
    place = place / 128
  end
  return quotient
end
