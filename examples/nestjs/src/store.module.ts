import { Injectable, Module, type OnApplicationShutdown } from '@nestjs/common'
import { RedisStore } from '@sluice/redis'
import { Redis } from 'ioredis'

const { REDIS_URL } = process.env

/** Where limits are counted: in Redis when REDIS_URL is set, so that any number of servers share them; else in memory. */
@Injectable()
export class StoreService implements OnApplicationShutdown {
  readonly store = REDIS_URL ? new RedisStore(new Redis(REDIS_URL, { lazyConnect: true })) : undefined

  constructor() {
    // Without its Redis the server starts all the same, and counts from the moment that it answers.
    this.store?.ready().catch((error: Error) => console.warn(error.message))
  }

  async onApplicationShutdown() {
    await this.store?.close()
  }
}

@Module({ providers: [StoreService], exports: [StoreService] })
export class StoreModule {}
