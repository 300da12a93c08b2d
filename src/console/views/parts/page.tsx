/** What the administration screens have in common. */
import type { ComponentChildren } from "preact";
import type { Loaded } from "../../data/use.js";
import { ErrorState, Waiting } from "./states.js";

export function Page({ label, children }: { readonly label: string; readonly children: ComponentChildren }) {
  return (
    <div class="page-body scroll stack" tabIndex={0} role="region" aria-label={label}>
      {children}
    </div>
  );
}

export function ForAdmins({ what }: { readonly what: string }) {
  return (
    <div class="empty">
      <h2>For admins</h2>
      <p>{what}</p>
    </div>
  );
}

/** The content, once it is there; what was loaded stays while a later request fails. */
export function WhenLoaded<T>({
  from,
  children,
}: {
  readonly from: Loaded<T>;
  readonly children: (value: T) => ComponentChildren;
}) {
  if (from.value !== undefined) return <>{children(from.value)}</>;
  if (from.error !== undefined) return <ErrorState error={from.error} onRetry={from.again} />;
  return <Waiting />;
}
