// Whether the browser tells when what is measured has ended.

import { canNotify, isWanted, wantNotice } from "../state/notify";

export function NoticeChoice() {
  if (!canNotify()) return null;
  return (
    <label class="check" title="The browser asks once whether this page may">
      <input
        type="checkbox"
        checked={isWanted()}
        onChange={(event) => void wantNotice(event.currentTarget.checked)}
      />
      Notify me when it has ended
    </label>
  );
}
