import type { CloudFrontHeaders, CloudFrontRequest, ViewerRequestEvent } from '../src/cloudfront/index.js'

/** An event as CloudFront hands it to a function for a viewer request, of a client of its own making. */
export function eventOf(changes: Partial<CloudFrontRequest> = {}): ViewerRequestEvent {
  const { headers, ...others } = changes
  const request: CloudFrontRequest = {
    clientIp: '203.0.113.178',
    headers: {
      host: [{ key: 'Host', value: 'd111111abcdef8.cloudfront.net' }],
      'user-agent': [{ key: 'User-Agent', value: 'curl/7.66.0' }],
      accept: [{ key: 'accept', value: '*/*' }],
      ...headers,
    } as CloudFrontHeaders,
    method: 'GET',
    querystring: '',
    uri: '/',
    ...others,
  }
  const config = {
    distributionDomainName: 'd111111abcdef8.cloudfront.net',
    distributionId: 'EDFDVBD6EXAMPLE',
    eventType: 'viewer-request',
    requestId: '4TyzHTaYWb1GX1qTfsHhEqV6HUDd_BzoBZnwfnvQc_1oF26ClkoUSEQ==',
  }
  const records = [{ cf: { config, request } }]
  return { Records: records }
}
