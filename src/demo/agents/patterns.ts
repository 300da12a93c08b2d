/** Patterns that the bundled agents look for in a question: sources of regular expressions, flags `iu` by default. */

const DAY =
  "today|tonight|tomorrow|(?:next )?(?:monday|tuesday|wednesday|thursday|friday|saturday|sunday)|in \\d{1,2} days?|\\d{4}-\\d{2}-\\d{2}";

/** Always matches, and captures `day` where the text names one. Flags `isu`. */
export const OPTIONAL_DAY = `^(?:.*?\\b(?<day>${DAY})\\b)?`;

/** A short follow-up such as "and on Friday?". */
export const DAY_AGAIN = `^\\W*(?:and|what about|how about)\\b.*\\b(?<day>${DAY})\\b`;

export const WEATHER_TOPIC = `\\b(?:weather|forecast|outlook|temperatures?|rain(?:y|ing)?|snow(?:y|ing)?|sunny|windy?|umbrella)\\b|${DAY_AGAIN.replace("?<day>", "?:")}`;

/** A place name with initial capitals. Flags `u`. */
export const PLACE =
  "\\b(?:[Ii]n|[Ff]or|[Aa]t)\\s+(?<place>\\p{Lu}[\\p{L}'’.-]*(?:\\s+(?:de|of|la|le|del|\\p{Lu}[\\p{L}'’-]*))*[\\p{L}])";

/** A place name in lower case. */
export const PLACE_IN_SMALL_LETTERS = `\\b(?:in|for|at)\\s+(?!the\\b|a\\b|\\d)(?<place>\\p{L}[\\p{L}'’-]*(?:\\s+(?!(?:${DAY}|on|and|this|next|in|at|please)\\b)\\p{L}[\\p{L}'’-]*){0,2})`;

const FUNCTION = "(?:abs|ceil|cos|exp|floor|ln|log|max|min|round|sin|sqrt|tan)";
const NUMBER = "[-−]?(?:\\d{1,3}(?:,\\d{3}){1,5}(?!\\d)|\\d{1,20})(?:\\.\\d{1,20})?%?";
// Brackets are bounded and no two parts match the same space, so that hostile text cannot cause backtracking.
const OPERAND = `(?:(?:${FUNCTION}\\s*)?\\(\\s*){0,8}${NUMBER}(?:\\s*\\)){0,8}%?`;
const OPERATOR =
  "(?:\\*\\*|[-+*/×÷^−]|%|of|plus|minus|times|mod|over|divided\\s+by|multiplied\\s+by|to\\s+the\\s+power\\s+of)";

/** An expression: at least one operator or function, and not a date. */
export const EXPRESSION = `(?<![\\w-])(?!\\d{4}-\\d{2}-\\d{2})(?<expression>${OPERAND}(?:(?:\\s*,)?\\s*${OPERATOR}\\s*${OPERAND})+|${FUNCTION}\\s*\\(\\s*${NUMBER}(?:\\s*,\\s*${NUMBER})*\\s*\\))`;

export const MATH_TOPIC = `${EXPRESSION.replace("?<expression>", "?:")}|\\b(?:calculate|compute|arithmetic)\\b`;

export const ADVICE_TOPIC =
  "\\b(?:advice|advise|recommend\\w*|strateg\\w+|consult\\w*|should (?:i|we)|options?|risks?|decid\\w+|decision)\\b";

export const ANALYSIS_TOPIC =
  "\\b(?:analy[sz]\\w*|analysis|statistics|average|mean|median|trends?|figures|data ?sets?|numbers)\\b";
