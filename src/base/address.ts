/** `host:port`, with the brackets that an IPv6 address needs. */
export function addressText({ host, port }: { readonly host: string; readonly port: number }): string {
  return host.includes(':') ? `[${host}]:${port}` : `${host}:${port}`
}
