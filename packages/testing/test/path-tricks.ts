import type { Sent } from './serve.js'

/** Spellings of `/api/login` that one or another layer might take for it. */
export const spellings: readonly string[] = [
  '/api/login',
  '/API/Login',
  '/api/LOGIN/',
  '/api/login/',
  '//api/login',
  '/api//login',
  '/api/login//',
  '/api/./login',
  '/x/../api/login',
  '/api/%6Cogin',
  '/%61pi/login',
  '/api%2Flogin',
  '/api/login%2F',
  '/api/login%20',
  '/api/login%00',
  '/api/login;x=1',
  '/api/login?x=1',
  '/api/login/.',
  '/api/login/%2e',
  '/api/log\\in',
  '/api/%zz',
  'http://elsewhere/api/login',
]

/** Says that it is a preflight, which passes uncounted, and is none. */
export const disguised: Sent = {
  method: 'OPTIONS',
  headers: { 'access-control-request-method': 'POST', 'x-http-method-override': 'POST' },
}
