// Prints what wrangler.jsonc needs for the policies.
import { wranglerConfig } from '@sluice/edge/cloudflare'
import * as policies from './policies.mjs'

console.log(wranglerConfig([policies.api]))
