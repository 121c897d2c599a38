/** Headers by their lower-case name. */
export type CloudFrontHeaders = Record<string, { key?: string | undefined; value: string }[]>

/** The request of a viewer event, as much as is looked at; all of it is passed on. */
export interface CloudFrontRequest {
  readonly clientIp: string
  readonly method: string
  uri: string
  querystring: string
  headers: CloudFrontHeaders
}

/** What CloudFront hands to a Lambda@Edge function for a viewer request. */
export interface ViewerRequestEvent {
  readonly Records: readonly { readonly cf: { readonly request: CloudFrontRequest } }[]
}

/** A response that a Lambda@Edge function makes in place of the origin. */
export interface CloudFrontResponse {
  status: string
  statusDescription?: string
  headers?: CloudFrontHeaders
  body?: string
  bodyEncoding?: 'text' | 'base64'
}
