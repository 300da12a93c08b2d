import { dialog } from "../../nav/dialogs.js";
import { Icon } from "../../ui/icon.js";
import { Kbd } from "../../ui/kit.js";

export function SearchButton() {
  return (
    <button
      type="button"
      class="seek"
      onClick={() => (dialog.value = { kind: "palette" })}
      title="Search and commands"
    >
      <Icon name="search" />
      <span>Search tasks, messages, agents</span>
      <Kbd>/</Kbd>
    </button>
  );
}
