/** The members of a conversation with what each may do, and the choice of those who see what one writes. */
import { callerName } from "../../data/api.js";
import type { Participant } from "../../data/shapes.js";
import { rightsOf } from "../../model/member-words.js";
import { firstLine, plural } from "../../model/words.js";
import { Text } from "../../ui/text.js";

/** Others are ids of connections, which nobody else can act as. */
const PRINCIPAL = /^(?:user|admin|agent):/;

interface MembersProps {
  readonly members: readonly Participant[];
  /** Of those who are in it now. A very long list is not told in full. */
  readonly count: number;
  /** Shows the turns as a member sees them; undefined where the caller cannot act as others. */
  readonly onLook: ((id: string) => void) | undefined;
}

export function Members({ members, count, onLook }: MembersProps) {
  const more = count - members.filter(({ leftAt }) => leftAt === undefined).length;
  return (
    <details class="members">
      <summary>{plural(count, "member")}</summary>
      <ul>
        {members.map(({ id, role, leftAt, permissions }) => (
          <li key={id}>
            <b>
              <Text>{id}</Text>
            </b>
            : <Text>{role}</Text>, {leftAt === undefined ? rightsOf(permissions) : "has left"}
            {onLook !== undefined && PRINCIPAL.test(id) && id !== callerName() && leftAt === undefined && (
              <>
                {" "}
                <button type="button" class="link" onClick={() => onLook(id)}>
                  as <Text>{id}</Text> sees it
                </button>
              </>
            )}
          </li>
        ))}
        {more > 0 && <li class="dim">and {more} more</li>}
      </ul>
    </details>
  );
}

interface AudienceProps {
  readonly members: readonly Participant[];
  /** Ids of those who see it; nobody is chosen: everybody does. */
  readonly value: readonly string[];
  readonly onChange: (ids: readonly string[]) => void;
}

export function Audience({ members, value, onChange }: AudienceProps) {
  // One who was chosen and has left can still be taken out.
  const ids = [...new Set([...members.map(({ id }) => id), ...value])];
  return (
    <details class="audience">
      <summary>
        to: <Text>{value.length === 0 ? "everybody" : firstLine(value.join(", "), 60)}</Text>
      </summary>
      <fieldset>
        <legend>Only these see it; none: everybody</legend>
        {ids.map((id) => (
          <label class="check" key={id}>
            <input
              type="checkbox"
              checked={value.includes(id)}
              onChange={(event) =>
                onChange(event.currentTarget.checked ? [...value, id] : value.filter((one) => one !== id))
              }
            />
            <Text>{firstLine(id, 40)}</Text>
          </label>
        ))}
      </fieldset>
    </details>
  );
}
