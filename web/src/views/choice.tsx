// One of a few values, as buttons side by side.

export function Choice<T extends string>(props: {
  label: string;
  value: T;
  choices: readonly (readonly [T, string])[];
  set: (value: T) => void;
}) {
  return (
    <fieldset class="switch">
      <legend class="hidden">{props.label}</legend>
      {props.choices.map(([value, title]) => (
        <button
          key={value}
          type="button"
          aria-pressed={props.value === value}
          onClick={() => props.set(value)}
        >
          {title}
        </button>
      ))}
    </fieldset>
  );
}
