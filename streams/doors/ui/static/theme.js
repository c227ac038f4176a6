// Before anything is painted: the theme that was chosen here, or the system's.
(() => {
  const chosen = localStorage.getItem("siltstone-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
})();
