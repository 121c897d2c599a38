import { All, Controller, Get, HttpCode, NotFoundException, Post, Req } from '@nestjs/common'
import { byApiKey, type Decision, definePlans, planByApiKey, RateLimit, SkipRateLimit } from '@sluice/nestjs'

const plans = definePlans({
  free: { limit: 5, window: '1m' },
  pro: [
    { name: 'burst', algorithm: 'token-bucket', limit: 10, window: '10s' },
    { name: 'daily', algorithm: 'fixed-window', limit: 1000, window: '1d' },
  ],
  enterprise: 'unlimited',
})
const apiKeys = { 'demo-pro': 'pro', 'demo-enterprise': 'enterprise' }

@Controller()
export class AppController {
  @Get()
  remaining(@Req() request: { rateLimit: Decision }) {
    return { remaining: request.rateLimit.remaining }
  }

  @SkipRateLimit()
  @Get('health')
  health() {
    return 'ok'
  }

  // A store that fails must not open the door to guessing: 503 rather than an uncounted attempt.
  @RateLimit({ name: 'login', limit: 3, window: '15m', onStoreError: 'deny' })
  @HttpCode(401)
  @Post('login')
  login() {
    return { error: 'wrong password' }
  }
}

// A key that nobody knows has a count of its own, but the limit of the application holds for its address.
@RateLimit({
  name: 'api',
  plans,
  plan: planByApiKey(apiKeys),
  defaultPlan: 'free',
  key: byApiKey('x-api-key'),
})
@Controller('api')
export class ApiController {
  @Get('report')
  report() {
    return { report: 'all is well' }
  }
}

// Guards run for routes alone: this one is for all other paths, so that the limit of the application counts them too.
@Controller()
export class UnknownController {
  @All('{*path}')
  unknown() {
    throw new NotFoundException()
  }
}
