/**
 * What a server has done since it started: microseconds of CPU, commands (those within scripts included), scripts, and
 * bytes.
 */
export async function serverCounts(client) {
  const [cpu, stats, commands] = await Promise.all(
    ['cpu', 'stats', 'commandstats'].map((part) => client.info(part)),
  )
  const number = (text, name) => Number(new RegExp(`${name}:([\\d.]+)`).exec(text)[1])
  const calls = [...commands.matchAll(/^cmdstat_([^:]+):calls=(\d+)/gm)]
  const own = ['info', 'config|resetstat']
  return {
    cpuUs: (number(cpu, 'used_cpu_user') + number(cpu, 'used_cpu_sys')) * 1e6,
    executed: calls.reduce((sum, [, command, count]) => sum + (own.includes(command) ? 0 : Number(count)), 0),
    scripts: calls.reduce(
      (sum, [, command, count]) => sum + (/^evalsha?$/.test(command) ? Number(count) : 0),
      0,
    ),
    bytesIn: number(stats, 'total_net_input_bytes'),
    bytesOut: number(stats, 'total_net_output_bytes'),
  }
}
