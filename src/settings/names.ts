/** The names of a setting outside `mail.toml`. */

/** `server.swarm.name` is MAILROOM_SWARM_NAME, `auth.jwt.issuer` MAILROOM_AUTH_JWT_ISSUER. */
export function variableOf(key: string): string {
  const short = key.replace(/^server\.(settings\.)?/, "");
  return `MAILROOM_${short.replaceAll(".", "_").toUpperCase()}`;
}

/** The property that commander uses for a flag: `swarmName` for `--swarm-name`. */
export function attributeOf(flag: string): string {
  return flag.replace(/^--/, "").replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}
