/** Which methods a path has, for those who use another one (405 instead of 404). */
export class MethodTable {
  readonly #paths: { readonly pattern: RegExp; readonly methods: readonly string[] }[] = [];

  constructor(routes: readonly { readonly path: string; readonly method: string }[]) {
    for (const path of new Set(routes.map((route) => route.path))) {
      const methods = new Set(routes.filter((route) => route.path === path).map(({ method }) => method));
      if (methods.has("GET")) methods.add("HEAD");
      const pattern = path.replaceAll(/[.*+?^$()|[\]\\]/g, "\\$&").replaceAll(/\{\w+\}/g, "[^/]+");
      this.#paths.push({ pattern: new RegExp(`^${pattern}$`), methods: [...methods] });
    }
  }

  allowedAt(url: string): readonly string[] {
    const path = url.split(/[?#]/, 1)[0] ?? "";
    return this.#paths.find(({ pattern }) => pattern.test(path))?.methods ?? [];
  }
}
