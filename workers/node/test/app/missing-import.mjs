import nothing from 'no-such-package';
export default nothing;
