import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'

test('the example cloudfront sheds a flood at the edge, and serves exactly the limit at the origin', async () => {
  const { stdout, stderr } = await promisify(execFile)(process.execPath, [join(__dirname, 'cloudfront.mjs')])
  const lines = stdout.trim().split('\n')
  expect(lines).toEqual([
    'flood on 12 containers of 4 locations: 2000 sent, 300 reached the origin, 100 served',
    'flood on cold containers, which know the feed: 1000 sent, 0 reached the origin, 0 served',
    'another client meanwhile: 8 sent, 8 reached the origin, 8 served',
    'after the reset the client is served again',
    'WAF rule api-api: 200 per 600 s',
    expect.stringMatching(
      /^CloudFront function: \d+ characters, and for its store \[\{"Puts":\[\{"Key":"api\/ip:203\.0\.113\.66","Value":"\[\d+,\[\\"api\\",100,600\]\]"\}\],"Deletes":\[\]\}\]$/,
    ),
  ])
  expect(stderr).toContain('sluice: WAF rules of "api": ')
  expect(stderr).toContain('sluice: CloudFront function of "api": the function cannot count')
})
