package service

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"strings"
)

// The shop keeps nothing: a token says whose it is, and a basket is answered from what was sent. So any number of users
// can be at work, and every run meets the same shop.

const (
	shopItems = 200
	shopPage  = 20
)

// login gives out a token: POST {"user": "ann", "password": "..."}. The password is that of every user: the name, backwards.
func (h *HTTP) login(w http.ResponseWriter, r *http.Request) {
	var body struct{ User, Password string }
	if !decode(w, r, &body) {
		return
	}
	if body.User == "" || body.Password != reversed(body.User) {
		refuse(w, http.StatusUnauthorized, "no such user, or another password")
		return
	}
	reply(w, map[string]any{"user": body.User, "token": token(body.User)})
}

// items lists a page of what there is: GET ?page=N, from 1.
func (h *HTTP) items(w http.ResponseWriter, r *http.Request) {
	page := 1
	if text := r.URL.Query().Get("page"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > shopItems/shopPage {
			refuse(w, http.StatusBadRequest, fmt.Sprintf("page must lie between 1 and %d", shopItems/shopPage))
			return
		}
		page = n
	}
	type item struct {
		ID    int    `json:"id"`
		Name  string `json:"name"`
		Cents int    `json:"cents"`
	}
	list := make([]item, shopPage)
	for i := range list {
		id := (page-1)*shopPage + i + 1
		list[i] = item{id, fmt.Sprintf("item %d", id), 99 + 100*(id%50)}
	}
	reply(w, map[string]any{"page": page, "pages": shopItems / shopPage, "items": list})
}

// basket takes an item: POST {"item": 17, "amount": 2}, with the token of a login.
func (h *HTTP) basket(w http.ResponseWriter, r *http.Request) {
	bearer, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	user, _, _ := strings.Cut(bearer, ".")
	if !ok || user == "" || bearer != token(user) {
		refuse(w, http.StatusUnauthorized, "the token is missing or not one of a login")
		return
	}
	var body struct {
		Item   int
		Amount *int
	}
	if !decode(w, r, &body) {
		return
	}
	amount := 1
	if body.Amount != nil {
		amount = *body.Amount
	}
	if body.Item < 1 || body.Item > shopItems || amount < 1 {
		refuse(w, http.StatusUnprocessableEntity, "there is no such item, or none of it")
		return
	}
	reply(w, map[string]any{"user": user, "item": body.Item, "amount": amount, "cents": amount * (99 + 100*(body.Item%50))})
}

// decode reads a body of JSON, or answers that it is none.
func decode(w http.ResponseWriter, r *http.Request, into any) bool {
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(into); err != nil {
		refuse(w, http.StatusBadRequest, "the body must be JSON")
		return false
	}
	return true
}

func reply(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(w).Encode(body)
}

func refuse(w http.ResponseWriter, code int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	json.NewEncoder(w).Encode(map[string]string{"error": why})
}

// token is the same for every login of a user.
func token(user string) string {
	f := fnv.New64a()
	f.Write([]byte("shop\x00" + user))
	return fmt.Sprintf("%s.%016x", user, f.Sum64())
}

func reversed(s string) string {
	r := []rune(s)
	for i, j := 0, len(r)-1; i < j; i, j = i+1, j-1 {
		r[i], r[j] = r[j], r[i]
	}
	return string(r)
}
