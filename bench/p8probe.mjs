import { withRedis } from './servers.mjs'
import { measureRedisCpu } from './redis-cpu.mjs'
await withRedis(async ({client}) => {
  const one = async (name, lua, n=20000) => {
    const sha = await client.script('LOAD', lua)
    await client.config('RESETSTAT')
    let i=0
    await Promise.all(Array.from({length:64}, async()=>{ while(i<n) await client.evalsha(sha, 1, 'k'+(i++%10000), '[["sc",0,10000,86400000000,10000],[1764500000000000,1,1,1,1,1]]') }))
    const s = await client.info('commandstats'); console.log(name, /cmdstat_evalsha:.*usec_per_call=([\d.]+)/.exec(s)[1])
  }
  await one('trivial','return 1')
  await one('time',"local t=redis.call('TIME') return 1")
  await one('cjson',"local t=cjson.decode(ARGV[1]) return 1")
  await one('mget',"local t=redis.call('MGET',unpack(KEYS)) return 1")
  await one('set',"redis.call('SET',KEYS[1],'aaaaaaaaaaaaaaaa','PX',86400000) return 1")
  console.log(await measureRedisCpu(client))
})
