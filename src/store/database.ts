/** The part of a database connection that tables use, so that they import no driver. */
export interface Database {
  prepare<Values extends unknown[] = unknown[], Row = unknown>(sql: string): Statement<Values, Row>;
  exec(sql: string): unknown;
}

/** Takes positional values, or one object with a property per named value. */
export interface Statement<Values extends unknown[], Row> {
  run(...values: Values): { readonly changes: number };
  get(...values: Values): Row | undefined;
  all(...values: Values): Row[];
  /** Reads row by row. Nothing else may run on the connection meanwhile. */
  iterate(...values: Values): IterableIterator<Row>;
  /** Makes `get` and `all` return the first column alone. */
  pluck(): Statement<Values, Row>;
}
