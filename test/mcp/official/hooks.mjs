/** The conformance package needs Node.js 22 for one function that these scenarios do not call. */
export async function load(url, context, next) {
  const loaded = await next(url, context);
  if (!url.endsWith("/conformance/dist/index.js")) return loaded;
  const source = String(loaded.source)
    .replace("globSync as o,", "")
    .replace(/^(#!.*\n)?/, "$1const o=()=>[];");
  return { ...loaded, source };
}
