/** Whether a host, alone or as it stands in a URL, names this machine (RFC 6761, 6.3), without asking the DNS. */
export function isLoopbackHost(host: string): boolean {
  return /^(?:(?:.+\.)?localhost|::1|\[::1\]|127(?:\.\d{1,3}){3})$/.test(host);
}
