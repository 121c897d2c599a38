import type { Decision, PolicyDecision } from '../decision.js'
import { readMessage, refuse } from './refusal.js'

const policies = [
  { name: 'burst', allowed: false, shadow: false },
  { name: 'daily', allowed: true, shadow: false },
  { name: 'trial', allowed: false, shadow: true },
] as PolicyDecision[]

const denied = (changes: Partial<Decision> = {}): Decision =>
  ({ allowed: false, reason: 'quota', retryAfterMs: 1200, policies, ...changes }) as Decision

const failed = denied({ reason: 'store-error', retryAfterMs: 1000, policies: [] })

test('a denial is problem details that name the denying policies', () => {
  const { status, contentType, body } = refuse(denied(), 429, undefined, undefined)
  expect({ status, contentType, problem: JSON.parse(body) }).toEqual({
    status: 429,
    contentType: 'application/problem+json',
    problem: {
      type: 'https://iana.org/assignments/http-problem-types#quota-exceeded',
      title: 'Quota exceeded',
      status: 429,
      detail: 'Try again in 2 seconds.',
      'violated-policies': ['burst'],
    },
  })
})

test('names of any text make JSON all the same', () => {
  const names = ['"quoted"', 'back\\slash', '{}', '']
  const decision = denied({ policies: names.map((name) => ({ ...policies[0], name })) as PolicyDecision[] })
  expect(JSON.parse(refuse(decision, 429, undefined, undefined).body)['violated-policies']).toEqual(names)
})

test('what a client accepts is its own, however many others came in between', () => {
  const accepted = Array.from(
    { length: 150 },
    (_, i) => `${i % 2 ? 'text/html' : 'application/json'}, image/x-${i}`,
  )
  for (let time = 0; time < 2; time++) {
    const types = accepted.map((accept) => refuse(denied(), 429, undefined, accept).contentType)
    expect(types).toEqual(
      accepted.map((_, i) => (i % 2 ? 'text/plain; charset=utf-8' : 'application/problem+json')),
    )
  }
})

test.each([
  ['one second', denied({ retryAfterMs: 1 }), 'Try again in 1 second.'],
  ['several', denied({ retryAfterMs: 61_000 }), 'Try again in 61 seconds.'],
  [
    'never',
    denied({ reason: 'cost', retryAfterMs: Number.POSITIVE_INFINITY }),
    'The request costs more than the limit can ever admit.',
  ],
  ['after a failed store', failed, 'The request could not be counted. Try again shortly.'],
])('the detail tells when to come back: %s', (_, decision, detail) => {
  expect(JSON.parse(refuse(decision, 429, undefined, undefined).body).detail).toBe(detail)
  expect(refuse(decision, 429, undefined, 'text/plain').body).toContain(detail)
})

test('a failed store is 503, whatever statusCode says of quota', () => {
  expect(refuse(failed, 420, undefined, undefined)).toMatchObject({
    status: 503,
    body: expect.stringContaining('#temporary-reduced-capacity'),
  })
  expect(refuse(denied(), 420, undefined, undefined)).toMatchObject({
    status: 420,
    body: expect.stringContaining('"status":420'),
  })
})

test.each([
  [undefined, true],
  ['*/*', true],
  ['application/*', true],
  ['APPLICATION/JSON', true],
  ['application/problem+json;q=0.2, text/html', true],
  ['text/html;q=0.9, */*;q=0.1', true],
  ['text/html', false],
  ['text/*', false],
  ['*/*;q=0', false],
  ['text/html, application/json;q=0, application/problem+json;q=0', false],
  ['no media type', false],
  [';;,,"', false],
])('Accept: %s takes JSON: %p', (accept, json) => {
  const { contentType, body } = refuse(denied(), 429, undefined, accept)
  expect(contentType).toBe(json ? 'application/problem+json' : 'text/plain; charset=utf-8')
  expect(body).toMatch(json ? /^\{/ : /^Quota exceeded\. Try again in 2 seconds\.\n$/)
})

test.each([
  ['Later', { contentType: 'text/plain; charset=utf-8', body: 'Later' }],
  ['', { contentType: 'text/plain; charset=utf-8', body: '' }],
  [{ error: 'later' }, { contentType: 'application/json; charset=utf-8', body: '{"error":"later"}' }],
  [['later'], { contentType: 'application/json; charset=utf-8', body: '["later"]' }],
])('the message %j replaces the body, whatever the client accepts', (message, expected) => {
  expect(refuse(denied(), 429, readMessage(message), 'image/png')).toMatchObject({ status: 429, ...expected })
  expect(refuse(failed, 429, readMessage(message), 'image/png')).toMatchObject({ status: 503, ...expected })
})

test.each([
  ['problem details', undefined, undefined, 'Quota exceeded. Try again in 2 seconds.'],
  ['plain text', undefined, 'text/plain', 'Quota exceeded. Try again in 2 seconds.'],
  ['a message of text', 'Later', undefined, 'Later'],
  ['a message of JSON', { error: 'later' }, undefined, 'Quota exceeded. Try again in 2 seconds.'],
])('what a refusal says as text does not depend on its body: %s', (_, message, accept, text) => {
  expect(refuse(denied(), 429, readMessage(message), accept).text).toBe(text)
})

const cycle: Record<string, unknown> = {}
cycle.self = cycle

test.each([
  ['null', null],
  ['a number', 7],
  ['a cycle', cycle],
  ['a bigint inside', { n: 1n }],
  ['an object without JSON', { toJSON: () => undefined }],
])('a message that is %s is refused at once', (_, message) => {
  expect(() => readMessage(message)).toThrow(expect.objectContaining({ code: 'SLUICE_BAD_OPTION' }))
})
