interface MaybeNode {
  readonly process?: { getBuiltinModule?(name: 'node:cluster'): { readonly isWorker?: boolean } | undefined }
}

/**
 * Whether this process is one of several that `node:cluster` started, as process managers do in their cluster mode.
 * False where that cannot be known: outside Node.js, and before its 20.16.
 */
export function isClusterWorker(): boolean {
  return (globalThis as MaybeNode).process?.getBuiltinModule?.('node:cluster')?.isWorker === true
}
