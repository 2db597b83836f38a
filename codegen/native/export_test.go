package native

// DivisionWait is for tests outside of the package.
const DivisionWait = divisionWait
