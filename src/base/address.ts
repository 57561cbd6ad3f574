/** `host:port`, with the brackets that an IPv6 address needs. */
export function addressText({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}

/** Whoever listens there is reached at any address of the machine; nobody can be called there. */
export function isEveryAddress(host: string): boolean {
  return host === '::' || host === '0.0.0.0' || host === ''
}
