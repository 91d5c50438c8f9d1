package cli

// everyPage reads a list to its end.
func everyPage[T any](fetch func(limit, offset int) (page []T, next int, err error)) ([]T, error) {
	all := []T{}
	for more, offset := true, 0; more; {
		page, next, err := fetch(pageSize, offset)
		if err != nil {
			return nil, err
		}
		all = append(all, page...)
		more, offset = len(page) == pageSize && next > offset, next
	}
	return all, nil
}
