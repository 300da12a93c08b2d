/** Where a value came from. */
export type Source =
  | { readonly from: "flag"; readonly flag: string }
  | { readonly from: "environment"; readonly variable: string }
  /** `line` is absent where it is unknown. */
  | { readonly from: "file"; readonly file: string; readonly line?: number }
  | { readonly from: "default" };

export function formatSource(source: Source): string {
  switch (source.from) {
    case "flag":
      return source.flag;
    case "environment":
      return source.variable;
    case "file":
      return source.line === undefined ? source.file : `${source.file}:${source.line}`;
    case "default":
      return "default";
    default:
      return source satisfies never;
  }
}
