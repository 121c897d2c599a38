import { base64Url } from './base64-url.js'

test.each([[[]], [[0]], [[251, 255]], [[255, 239, 190]], [[...Array(256).keys()]]])(
  'writes %j as Node.js does',
  (bytes) => {
    expect(base64Url(Uint8Array.from(bytes))).toBe(Buffer.from(bytes).toString('base64url'))
  },
)
